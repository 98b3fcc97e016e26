import { InvalidArgumentError } from 'commander';
import type { GivenPhoneNumber } from '../wabas.ts';

/** Reads one `--number <phoneNumberId>[:<display number>[:<verified name>]]`; the name may contain colons. */
export function parsePhoneNumber(text: string, earlier: GivenPhoneNumber[] = []): GivenPhoneNumber[] {
  const [, phoneNumberId, displayPhoneNumber, verifiedName] =
    /^(\d{1,64})(?::([^:]*)(?::(.*))?)?$/s.exec(text) ?? [];
  if (phoneNumberId === undefined) {
    throw new InvalidArgumentError('Write it as <phoneNumberId>[:<display number>[:<verified name>]].');
  }
  return [
    ...earlier,
    {
      phoneNumberId,
      ...(displayPhoneNumber && { displayPhoneNumber }),
      ...(verifiedName && { verifiedName }),
    },
  ];
}
