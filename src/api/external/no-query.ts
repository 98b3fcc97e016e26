import { Type } from 'typebox';

/** For endpoints without query parameters: one that is sent all the same is refused rather than ignored. */
export const NoQuery = Type.Object({}, { additionalProperties: false });
