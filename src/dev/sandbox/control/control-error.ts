/** A control request that cannot be carried out; its message is for the developer. */
export class ControlError extends Error {
  override name = 'ControlError';
  readonly statusCode: number;
  readonly code: string;

  constructor(statusCode: number, code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.statusCode = statusCode;
    this.code = code;
  }
}
