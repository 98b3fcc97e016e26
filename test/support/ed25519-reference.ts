import { createHash } from 'node:crypto';

/** Ed25519 after RFC 8032 §5.1, in plain numbers: shares nothing with the implementation that signs. */

const P = 2n ** 255n - 19n;
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
const D = mod(-121665n * inverse(121666n));
const ROOT_OF_MINUS_ONE = power(2n, (P - 1n) / 4n);

/** X, Y, Z, T: x = X/Z, y = Y/Z, xy = T/Z. */
type Point = [bigint, bigint, bigint, bigint];

const BASE = affine(xOf(mod(4n * inverse(5n)), 0n) ?? 0n, mod(4n * inverse(5n)));

/** Whether `signature` is that of the message by the private key of `publicKey`. */
export function verifiesEd25519(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const a = decoded(publicKey);
  const r = decoded(signature.subarray(0, 32));
  const s = number(signature.subarray(32));
  if (a === null || r === null || signature.length !== 64 || s >= ORDER) return false;
  const hash = createHash('sha512').update(signature.subarray(0, 32)).update(publicKey).update(message);
  const right = add(r, times(a, number(hash.digest()) % ORDER));
  const left = times(BASE, s);
  return [0, 1].every((at) => mod((left[at] ?? 0n) * right[2]) === mod((right[at] ?? 0n) * left[2]));
}

function decoded(bytes: Uint8Array): Point | null {
  const all = number(bytes);
  const y = all & (2n ** 255n - 1n);
  if (bytes.length !== 32 || y >= P) return null;
  const x = xOf(y, all >> 255n);
  return x === null ? null : affine(x, y);
}

function xOf(y: bigint, sign: bigint): bigint | null {
  const square = mod((y * y - 1n) * inverse(D * y * y + 1n));
  const candidate = power(square, (P + 3n) / 8n);
  const x = mod(candidate * candidate - square) === 0n ? candidate : mod(candidate * ROOT_OF_MINUS_ONE);
  if (mod(x * x - square) !== 0n || (x === 0n && sign === 1n)) return null;
  return (x & 1n) === sign ? x : P - x;
}

function affine(x: bigint, y: bigint): Point {
  return [x, y, 1n, mod(x * y)];
}

/** §5.1.4 */
function add([x1, y1, z1, t1]: Point, [x2, y2, z2, t2]: Point): Point {
  const a = mod((y1 - x1) * (y2 - x2));
  const b = mod((y1 + x1) * (y2 + x2));
  const c = mod(2n * D * t1 * t2);
  const d = mod(2n * z1 * z2);
  const [e, f, g, h] = [b - a, d - c, d + c, b + a];
  return [mod(e * f), mod(g * h), mod(f * g), mod(e * h)];
}

function times(point: Point, scalar: bigint): Point {
  let sum = affine(0n, 1n);
  let doubled = point;
  for (let rest = scalar; rest > 0n; rest >>= 1n) {
    if ((rest & 1n) === 1n) sum = add(sum, doubled);
    doubled = add(doubled, doubled);
  }
  return sum;
}

function number(littleEndian: Uint8Array): bigint {
  return littleEndian.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
}

function mod(value: bigint): bigint {
  return ((value % P) + P) % P;
}

function inverse(value: bigint): bigint {
  return power(value, P - 2n);
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  let square = mod(base);
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if ((rest & 1n) === 1n) result = mod(result * square);
    square = mod(square * square);
  }
  return result;
}

/** Whether an entry `v1a,…` of a `webhook-signature` is that of this webhook by the key of `whpk_…`. */
export function verifiesWebhook(
  publicKey: string,
  { id, timestamp, list, body }: { id: string; timestamp: string | number; list: string; body: string },
): boolean {
  const key = Buffer.from(publicKey.replace(/^whpk_/, ''), 'base64');
  const signatures = list.split(' ').filter((entry) => entry.startsWith('v1a,'));
  return signatures.some((entry) =>
    verifiesEd25519(
      key,
      Buffer.from(`${id}.${timestamp}.${body}`),
      Buffer.from(entry.slice('v1a,'.length), 'base64'),
    ),
  );
}
