import { insertAppMessages } from '../../features/messages/app-messages.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { conversationsWith } from '../senders/customer-conversations.ts';
import { readEchoes } from '../split/echoes.ts';
import { saveAppMedia } from './app-media.ts';
import type { FieldValue } from './field-values.ts';

/** Puts what the business wrote in the WhatsApp Business app into its conversations. */
export async function applyEchoes(trx: Transaction, values: readonly FieldValue[]): Promise<void> {
  const echoes = values.flatMap(({ wabaId, phoneNumberId, value }) =>
    readEchoes(value).map((echo) => ({ ...echo, wabaId, phoneNumberId })),
  );
  if (echoes.length === 0) return;
  const seen = echoes.map(({ recipient, wabaId, phoneNumberId }) => ({
    ...recipient,
    wabaId,
    phoneNumberId,
  }));
  const conversations = await conversationsWith(trx, seen, { isActivity: true });
  await insertAppMessages(
    trx,
    echoes.map(({ rawJson: content, recipient: _recipient, media: _media, ...echo }, index) => ({
      ...echo,
      content,
      conversationId: conversations[index] ?? '',
      ...({ direction: 'outbound', origin: 'business_app' } as const),
    })),
  );
  await saveAppMedia(trx, echoes);
}
