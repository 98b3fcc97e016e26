/** What an outbound message says of the payment that it asks for. */
export type OrderPayment = {
  referenceId: string;
  /** Under which upstream looks the payment up; null: paid in a way that upstream knows nothing of. */
  configuration: string | null;
};

const MAX_REFERENCE_CHARS = 512;
const MAX_CONFIGURATION_CHARS = 256;

type Members = Readonly<Record<string, unknown>>;

/** The payment of an order_details message, interactive or template; null for every other message. */
export function orderPaymentOf(message: unknown): OrderPayment | null {
  const parameters = isMembers(message) ? orderDetailsOf(message) : null;
  const referenceId = textOf(parameters?.reference_id, MAX_REFERENCE_CHARS);
  if (parameters === null || referenceId === null) return null;
  return { referenceId, configuration: configurationOf(parameters) };
}

function orderDetailsOf(message: Members): Members | null {
  const { interactive, template } = message;
  if (isMembers(interactive) && interactive.type === 'order_details') {
    const parameters = isMembers(interactive.action) ? interactive.action.parameters : null;
    return isMembers(parameters) ? parameters : null;
  }
  if (!isMembers(template)) return null;
  for (const component of listOf(template.components)) {
    for (const parameter of listOf(component.parameters)) {
      const details = isMembers(parameter.action) ? parameter.action.order_details : null;
      if (isMembers(details)) return details;
    }
  }
  return null;
}

function configurationOf(parameters: Members): string | null {
  for (const setting of listOf(parameters.payment_settings)) {
    const gateway = setting.payment_gateway;
    const name = isMembers(gateway) ? textOf(gateway.configuration_name, MAX_CONFIGURATION_CHARS) : null;
    if (name !== null) return name;
  }
  return textOf(parameters.payment_configuration, MAX_CONFIGURATION_CHARS);
}

function listOf(value: unknown): Members[] {
  return Array.isArray(value) ? value.filter(isMembers) : [];
}

function textOf(value: unknown, maxChars: number): string | null {
  return typeof value === 'string' && value !== '' && value.length <= maxChars ? value : null;
}

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
