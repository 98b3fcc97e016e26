import { type GraphConnection, graphGet } from './graph-connection.ts';
import { noAnswer } from './graph-error.ts';

/** A phone number of a WABA as upstream describes it; its enumerations differ between documents, so all are text. */
export type UpstreamPhoneNumber = {
  phoneNumberId: string;
  displayPhoneNumber: string;
  verifiedName: string;
  qualityRating: string | null;
};

const PAGE_SIZE = 100;
const MAX_PAGES = 20;

/** All phone numbers of a WABA: `GET /{waba}/phone_numbers`, page by page. Throws GraphError. */
export async function listPhoneNumbers(
  connection: GraphConnection,
  wabaId: string,
  token: string,
): Promise<UpstreamPhoneNumber[]> {
  const numbers: UpstreamPhoneNumber[] = [];
  let after: string | null = null;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const answer = await graphGet(connection, {
      path: [wabaId, 'phone_numbers'],
      query: {
        fields: 'id,display_phone_number,verified_name,quality_rating',
        limit: String(PAGE_SIZE),
        ...(after === null ? {} : { after }),
      },
      token,
    });
    const { data } = answer;
    // An answer without a list must not pass for a WABA without numbers.
    if (!Array.isArray(data)) throw noAnswer('it lists no phone numbers');
    numbers.push(...data.flatMap(phoneNumberOf));
    after = nextCursor(answer.paging);
    if (after === null) break;
  }
  return numbers;
}

function phoneNumberOf(value: unknown): UpstreamPhoneNumber[] {
  if (typeof value !== 'object' || value === null) return [];
  const { id, display_phone_number, verified_name, quality_rating } = value as Record<string, unknown>;
  if (typeof id !== 'string' || id === '') return [];
  return [
    {
      phoneNumberId: id,
      displayPhoneNumber: textOr(display_phone_number, ''),
      verifiedName: textOr(verified_name, ''),
      qualityRating: textOr(quality_rating, null),
    },
  ];
}

/** There is a next page only when upstream gives its address; the cursors are there on the last page too. */
function nextCursor(paging: unknown): string | null {
  if (typeof paging !== 'object' || paging === null || !('next' in paging)) return null;
  const cursors = 'cursors' in paging ? paging.cursors : null;
  if (typeof cursors !== 'object' || cursors === null || !('after' in cursors)) return null;
  return typeof cursors.after === 'string' && cursors.after !== '' ? cursors.after : null;
}

function textOr<Fallback>(value: unknown, fallback: Fallback): string | Fallback {
  return typeof value === 'string' ? value : fallback;
}
