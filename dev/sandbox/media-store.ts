import { createHash } from 'node:crypto';

/** Media that the stand-in platform can hand out. */
export type StoredMedia = {
  id: string;
  mimeType: string;
  filename?: string;
  bytes: Buffer;
  sha256Hex: string;
  sha256Base64: string;
};

/** What is put into the store. */
type NewMedia = { bytes: Buffer; mimeType: string; filename?: string };

/** The media of one server. */
export type MediaStore = {
  put: (media: NewMedia) => StoredMedia;
  /** Stored media, or the fixture bytes of an unknown all-digit id; undefined when gone or never there. */
  find: (id: string) => StoredMedia | undefined;
  /** Makes an id unknown from now on; false when it was so already. */
  remove: (id: string) => boolean;
};

const MAX_TOTAL_BYTES = 512 * 1024 * 1024;
const FIXTURE_ID = /^\d{1,32}$/;
// Ids of this form are ours: after a restart they are gone and do not turn into fixtures.
const GENERATED_ID = /^69\d{16}$/;

/** MIME types of the media ids that the upstream fixtures use. */
const FIXTURE_MIME_TYPES: Record<string, string> = {
  '600000000000003': 'video/mp4',
  '600000000000004': 'audio/ogg; codecs=opus',
  '600000000000005': 'audio/mpeg',
  '600000000000006': 'application/pdf',
  '600000000000007': 'application/pdf',
  '600000000000009': 'image/webp',
  '600000000000010': 'image/webp',
  '600000000000502': 'audio/ogg; codecs=opus',
};

function withDigest(id: string, media: NewMedia): StoredMedia {
  const digest = createHash('sha256').update(media.bytes).digest();
  return { id, ...media, sha256Hex: digest.toString('hex'), sha256Base64: digest.toString('base64') };
}

function fixtureMedia(id: string): StoredMedia {
  const mimeType = FIXTURE_MIME_TYPES[id] ?? 'image/jpeg';
  return withDigest(id, { bytes: Buffer.from(`fixture-media:${id}\n`), mimeType });
}

/** Creates a store in memory; beyond 512 MiB the oldest media are forgotten. */
export function createMediaStore(now: () => number): MediaStore {
  const stored = new Map<string, StoredMedia>();
  const gone = new Set<string>();
  let totalBytes = 0;
  let lastNumber = 0;

  const forget = (media: StoredMedia) => {
    stored.delete(media.id);
    totalBytes -= media.bytes.length;
  };

  const find = (id: string): StoredMedia | undefined => {
    if (gone.has(id)) {
      return undefined;
    }
    const isFixture = FIXTURE_ID.test(id) && !GENERATED_ID.test(id);
    return stored.get(id) ?? (isFixture ? fixtureMedia(id) : undefined);
  };

  return {
    put: (media) => {
      lastNumber += 1;
      const id = `69${now()}${String(lastNumber % 1000).padStart(3, '0')}`;
      const added = withDigest(id, media);
      stored.set(id, added);
      totalBytes += media.bytes.length;
      for (const oldest of stored.values()) {
        if (totalBytes <= MAX_TOTAL_BYTES || oldest.id === id) {
          break;
        }
        forget(oldest);
      }
      return added;
    },
    find,
    remove: (id) => {
      const media = find(id);
      const kept = stored.get(id);
      if (kept !== undefined) {
        forget(kept);
      }
      gone.add(id);
      return media !== undefined;
    },
  };
}
