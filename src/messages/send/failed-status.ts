import { localMessageId } from '../send-marker.ts';
import { type SendError, statusErrorOf } from './send-error.ts';

type FailedSend = {
  messageId: string;
  phoneNumberId: string;
  displayPhoneNumber: string;
  /** Digits of a phone, or a business-scoped user id. */
  recipient: string;
  /** The upstream message object, JSON text. */
  content: string;
  error: SendError;
  at: Date;
};

/**
 * The status of a message that upstream never gave an id, in the form of upstream's own `failed` status, and `data` of
 * its event.
 */
export function failedStatus(send: FailedSend): { id: string; statusJson: string; dataJson: string } {
  const id = localMessageId(send.messageId);
  const isPhone = /^\d+$/.test(send.recipient);
  const { biz_opaque_callback_data: opaque } = JSON.parse(send.content) as Record<string, unknown>;
  const status = {
    id,
    status: 'failed',
    timestamp: String(Math.floor(send.at.getTime() / 1_000)),
    recipient_id: send.recipient,
    ...(isPhone ? {} : { recipient_user_id: send.recipient }),
    ...(typeof opaque === 'string' ? { biz_opaque_callback_data: opaque } : {}),
    errors: [statusErrorOf(send.error)],
  };
  const metadata = {
    display_phone_number: send.displayPhoneNumber.replace(/\D/g, ''),
    phone_number_id: send.phoneNumberId,
  };
  return { id, statusJson: JSON.stringify(status), dataJson: JSON.stringify({ metadata, status }) };
}
