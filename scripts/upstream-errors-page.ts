import {
  PERMISSION_CODES,
  type SendErrorClass,
  UPSTREAM_ERRORS,
} from '../src/features/messages/send/upstream-errors.ts';

const AGAIN: Readonly<Record<SendErrorClass, string>> = {
  retry: 'Heliograph, by itself',
  once: 'Heliograph, once',
  later: 'you, hours or a day later',
  fix: 'you, after the fix',
  never: 'no',
  token: 'you, after the operator’s fix',
};

const HEAD = `# Error codes of the upstream platform

What each code means and what you do about it, by number. This page is made of the table by which Heliograph decides
(\`npm run upstream-errors\`). Errors of Heliograph's own API are explained at \`/docs/errors\` of an installation.

## Of a message that you send

The code is in \`error.upstream.code\` of the response, in \`errors[].code\` of a \`status\` event, and in the \`statuses\` of
[the message](api.md#status-of-a-message); \`advice\` beside it is the text below. A code that is not listed here is final: nothing is sent again.
"upstream" in a text is that member of the response.

| code | meaning | sent again by | what to do |
|---|---|---|---|
`;

const TAIL = `| -1 | the cause is in Heliograph, such as a missing access token | you, after the fix | read \`message\` of the error |

## Of a message that you receive

The code is in \`data.message.errors[].code\` of a \`message\` event. The message has no content.

| code | meaning | what to do |
|---|---|---|
| 131035 | A number without storage upstream lost the content: its hour for webhooks has passed | Ask the customer to send it again. |
| 131051 | The type of the message is not supported by upstream's API; \`unsupported.type\` may name it | Ask the customer for another form, such as text or a photo. |
| 131052 | Upstream could not fetch the file that the customer sent; over 100 MB it never can | Ask the customer to send it again, or a smaller file. |
| 131060 | The message is not available, often the first message after a click on an ad | Keep the contact and \`referral\`, and write to the customer. The message itself may follow under the same id. |
`;

/** The text of docs/tenants/upstream-errors.md. */
export function upstreamErrorsPage(): string {
  const permissions = `${PERMISSION_CODES.first} to ${PERMISSION_CODES.last}`;
  const rows = UPSTREAM_ERRORS.flatMap((error) => {
    const row = { ...error, code: String(error.code) };
    return error.code === 190 ? [row, { ...rowOfPermission(), code: permissions }] : [row];
  });
  const lines = rows.map((row) => `| ${row.code} | ${row.meaning} | ${AGAIN[row.class]} | ${row.advice} |\n`);
  return `${HEAD}${lines.join('')}${TAIL}`;
}

function rowOfPermission() {
  const row = UPSTREAM_ERRORS.find(({ code }) => code === 10);
  if (row === undefined) throw new Error('the table has no permission error');
  return row;
}
