const PREFIX = 'heliograph:';
const IN_STATUS = new RegExp(`"biz_opaque_callback_data"\\s*:\\s*"${PREFIX}([1-9]\\d{0,18})"`);

/**
 * The `biz_opaque_callback_data` of a message whose sender gave none. Upstream repeats it in each status, which tells
 * of a send that got no answer whether it went out.
 */
export function sendMarker(messageId: string): string {
  return PREFIX + messageId;
}

/** The Message_Id in the JSON text of a status that carries our mark; null for any other. */
export function markedMessageId(statusJson: string): string | null {
  return IN_STATUS.exec(statusJson)?.[1] ?? null;
}

/** The id under which a message is known that will never have one of upstream's: in its `failed` status and event. */
export function localMessageId(messageId: string): string {
  return `local:${messageId}`;
}
