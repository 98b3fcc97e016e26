import { createHash } from 'node:crypto';
import type { MultipartFile, MultipartValue } from '@fastify/multipart';
import type { FastifyRequest } from 'fastify';
import { sniffMediaType } from '../../../features/messages/media/media-type.ts';
import type { UploadedFile } from '../../../features/messages/send/media-uploads.ts';
import {
  essenceOf,
  HEAD_BYTES,
  MAX_UPLOAD_BYTES,
  type MediaKind,
  maxBytesOf,
  mayBeginAs,
  mediaKindOf,
  SENDABLE_MIME_TYPES,
  uploadedFileName,
} from '../../../features/messages/send/uploaded-media.ts';
import { ApiError, invalidParameter } from '../../errors/api-error.ts';
import { makeReader, type Reader } from './client-reader.ts';

export type UploadForm = {
  /**
   * The bytes of the file. Throws ApiError as soon as something is wrong with them, and at their end when something is
   * wrong with what follows them or with the form as a whole.
   */
  source: AsyncGenerator<Uint8Array>;
  result(): UploadedFile;
};

export type FormRules = {
  furtherFields?: 'refused' | 'ignored';
  /** By default those that may be sent. */
  mimeTypes?: readonly string[];
};

const MULTIPART_LIMITS = {
  // Of each part, its name and the name of the file included.
  headerSize: 40_000,
  fieldNameSize: 100,
  fieldSize: 1_000,
  fields: 10,
  // One more than is taken, so that the second is noticed.
  files: 2,
  parts: 12,
  fileSize: MAX_UPLOAD_BYTES + 1,
};

/** Throws ApiError for everything that is wrong before the file. When `cut` rejects, nothing more is waited for. */
export async function openUploadForm(
  request: FastifyRequest,
  cut: Promise<never>,
  { furtherFields = 'refused', mimeTypes = SENDABLE_MIME_TYPES }: FormRules = {},
): Promise<UploadForm> {
  const takeField = furtherFields === 'refused' ? takeKnownField : takeFieldIfKnown;
  const parts = request.parts({ limits: MULTIPART_LIMITS });
  const readable = makeReader(request, cut, (cause) => new ApiError('invalid_multipart', { cause }));
  const next = () => readable(() => parts.next());
  const fields = new Map<string, string>();
  for (;;) {
    const { value: part, done } = await next();
    if (done) throw invalidParameter('file', 'The parameter is missing.');
    if (part.type === 'field') {
      takeField(fields, part);
      continue;
    }
    checkFilePart(part);
    const restOfForm = async () => {
      for (let rest = await next(); !rest.done; rest = await next()) {
        if (rest.value.type === 'field') takeField(fields, rest.value);
        else refuseFile(rest.value);
      }
    };
    return readFile(part, fields, { restOfForm, readable, mimeTypes });
  }
}

type FormReading = { restOfForm: () => Promise<void>; readable: Reader; mimeTypes: readonly string[] };

function readFile(
  part: MultipartFile,
  fields: ReadonlyMap<string, string>,
  { restOfForm, readable, mimeTypes }: FormReading,
): UploadForm {
  const hash = createHash('sha256');
  let head = Buffer.alloc(0);
  let sizeBytes = 0;
  let file: UploadedFile | null = null;
  const mimeType = () => essenceOf(fields.get('type') ?? part.mimetype);

  async function* source(): AsyncGenerator<Uint8Array> {
    const chunks = part.file[Symbol.asyncIterator]();
    for (;;) {
      const { value: chunk, done } = await readable(() => chunks.next());
      if (done) break;
      sizeBytes += chunk.length;
      if (head.length < HEAD_BYTES) head = Buffer.concat([head, chunk]).subarray(0, HEAD_BYTES);
      checkSize(sizeBytes, mediaKindOf(mimeType()), head);
      hash.update(chunk);
      yield chunk;
    }
    await restOfForm();
    if (sizeBytes === 0) throw invalidParameter('file', 'The file is empty.');
    const mediaType = checkedKind(mimeType(), mimeTypes);
    checkSize(sizeBytes, mediaType, head);
    checkFirstBytes(mimeType(), head);
    const fileName = uploadedFileName(part.filename);
    file = { mediaType, mimeType: mimeType(), fileName, sizeBytes, sha256: hash.digest('hex') };
  }
  return {
    source: source(),
    result: () => {
      if (file === null) throw new Error('the upload has not ended');
      return file;
    },
  };
}

/** The type may be said behind the file, so for the time being one that is not known may be anything. */
function checkSize(sizeBytes: number, kind: MediaKind | null, head: Uint8Array): void {
  const maxBytes = kind === null ? MAX_UPLOAD_BYTES : maxBytesOf(kind, head);
  if (sizeBytes <= maxBytes) return;
  const what = kind === null ? 'A file' : `A file of type ${kind}`;
  throw new ApiError('file_too_large', { param: 'file', message: `${what} has up to ${maxBytes} bytes.` });
}

function checkedKind(mimeType: string, allowed: readonly string[]): MediaKind {
  const kind = mediaKindOf(mimeType);
  if (kind !== null && allowed.includes(mimeType)) return kind;
  throw new ApiError('unsupported_file_type', {
    param: 'type',
    message: `The upstream platform takes files of these types: ${allowed.join(', ')}.`,
  });
}

/** Upstream would refuse the file, but only when the first message needs it. */
function checkFirstBytes(mimeType: string, head: Uint8Array): void {
  const found = sniffMediaType(head);
  if (mayBeginAs(mimeType, found)) return;
  const instead = found === null ? '' : `, but as ${found} does`;
  throw new ApiError('unsupported_file_type', {
    param: 'file',
    message: `The file does not begin as ${mimeType} does${instead}.`,
  });
}

/** A longer name may have lost its end, and with it the type that follows. */
const MAX_FILE_NAME_CHARS = 8_000;

function checkFilePart({ fieldname, filename }: MultipartFile): void {
  if (fieldname !== 'file') throw noSuchField(fieldname);
  // What the parser puts in place of bytes that are no UTF-8.
  if (filename.includes('\ufffd')) throw invalidParameter('file', 'The name of the file is not UTF-8.');
  if (filename.length <= MAX_FILE_NAME_CHARS) return;
  throw invalidParameter('file', `The name of the file has up to ${MAX_FILE_NAME_CHARS} characters.`);
}

function refuseFile(part: MultipartFile): never {
  checkFilePart(part);
  throw invalidParameter('file', 'There may be one file.');
}

const KNOWN_FIELDS = ['type', 'messaging_product'];

/** Upstream passes over fields that it does not know. */
function takeFieldIfKnown(fields: Map<string, string>, part: MultipartValue): void {
  if (part.fieldname === 'file' || KNOWN_FIELDS.includes(part.fieldname)) takeKnownField(fields, part);
}

function takeKnownField(fields: Map<string, string>, part: MultipartValue): void {
  const { fieldname: name, value } = part;
  const invalid = (message: string) => invalidParameter(name, message);
  if (name === 'file') throw invalid('The parameter must be a file: its part needs a filename.');
  if (!KNOWN_FIELDS.includes(name)) throw noSuchField(name);
  if (fields.has(name)) throw invalid('The parameter is given twice.');
  if (typeof value !== 'string' || part.valueTruncated) throw invalid('The parameter must be a short text.');
  if (name === 'messaging_product' && value !== 'whatsapp') throw invalid('The parameter must be whatsapp.');
  fields.set(name, value);
}

const MAX_NAME_CHARS = 100;

function noSuchField(name: string): ApiError {
  return invalidParameter(name.toWellFormed().slice(0, MAX_NAME_CHARS), 'There is no such parameter.');
}
