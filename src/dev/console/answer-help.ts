import { codeBlock } from '../../api/portal/components/copyable.ts';
import { html, type Markup } from '../../api/portal/markup.ts';
import type { ConsoleChoice } from './console-choice.ts';

/** How the business answers: with the API, as a real one does. */
export function answerHelp({ number, customer }: ConsoleChoice, apiUrl: string): Markup {
  const command = (message: Record<string, unknown>) => {
    const body = { phoneNumberId: number.phoneNumberId, to: customer.waId, ...message };
    return `curl ${apiUrl}/api/external/messages \\
  -H "Authorization: Bearer $API_KEY" -H 'Content-Type: application/json' \\
  -d '${JSON.stringify(body)}'`;
  };
  const button = (id: string, title: string) => ({ type: 'reply', reply: { id, title } });
  const text = { type: 'text', text: { body: 'Yes, in all sizes.' } };
  const buttons = {
    type: 'interactive',
    interactive: {
      type: 'button',
      body: { text: 'Which size shall it be?' },
      action: { buttons: [button('s', 'Small'), button('m', 'Medium'), button('l', 'Large')] },
    },
  };
  return html`<details class="card answer-help"><summary>Reply as the business</summary>
<p>The business sends through the API. Its messages appear on the phone with their ticks, and you can tap their buttons. <code>npm start</code> prints the demo API key.</p>
${codeBlock(command(text), 'Command that sends a text')}
${codeBlock(command(buttons), 'Command that sends buttons')}
</details>`;
}
