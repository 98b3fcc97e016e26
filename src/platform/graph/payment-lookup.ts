import { type GraphConnection, graphGet } from './graph-connection.ts';

export type PaymentLookup = {
  phoneNumberId: string;
  /** The name of the payment configuration that the order message was sent with. */
  configuration: string;
  referenceId: string;
  token: string;
  timeoutMs: number;
};

/** What upstream knows of a payment: `GET /{phone}/payments/{configuration}/{reference id}`. Throws GraphError. */
export async function lookUpPayment(
  connection: GraphConnection,
  { phoneNumberId, configuration, referenceId, token, timeoutMs }: PaymentLookup,
): Promise<unknown[]> {
  const path = [phoneNumberId, 'payments', configuration, referenceId];
  const { payments } = await graphGet(connection, { path, token, timeoutMs });
  return Array.isArray(payments) ? payments : [];
}
