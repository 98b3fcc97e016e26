import { Type } from 'typebox';

/** A line of a form; what is too long for any field is refused before anything looks at it. */
export const formLine = (maxLength = 1_024) => Type.String({ maxLength });

/** A form without fields of its own. */
export const EMPTY_FORM = Type.Object({}, { additionalProperties: false });
