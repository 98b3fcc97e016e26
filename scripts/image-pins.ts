/** Where images of registries are named, below the repository: what is built here names none. */
export const IMAGE_FILES = [
  'Dockerfile',
  'deploy/*/Dockerfile',
  'test/stack/*.Dockerfile',
  'docker-compose*.yml',
  'deploy/*/docker-compose.yml',
  'test/stack/*.yml',
] as const;

const NAMED = /^(?<before>\s*(?:FROM (?:--platform=\S+ )?|image: ))(?<image>[^\s$#"']+)/gm;
const BUILT_HERE = /^heliograph(?:-\w+)?:/;
const PINNED = /@sha256:[0-9a-f]{64}$/;

/** The images of registries that a file names, in its order. A stage of the same Dockerfile is none. */
export function imagesIn(text: string): string[] {
  const stages = new Set([...text.matchAll(/^FROM .+ AS (\S+)$/gm)].map(([, stage]) => stage));
  return [...text.matchAll(NAMED)]
    .map(({ groups }) => groups?.image ?? '')
    .filter((image) => !BUILT_HERE.test(image) && !stages.has(image));
}

/** Those whose content can change under their name. */
export function unpinnedIn(text: string): string[] {
  return imagesIn(text).filter((image) => !PINNED.test(image));
}

/** Names each image with the digest that its tag has now, also in place of an earlier digest. */
export async function withDigests(
  text: string,
  digestOf: (image: string) => Promise<string>,
): Promise<string> {
  const digests = new Map<string, string>();
  for (const image of imagesIn(text)) {
    const tag = image.replace(/@.*$/, '');
    const digest = await digestOf(tag);
    if (!PINNED.test(`@${digest}`)) throw new Error(`the registry has no digest of ${tag}: ${digest}`);
    digests.set(image, `${tag}@${digest}`);
  }
  return text.replace(NAMED, (whole, before: string, image: string) => {
    const pinned = digests.get(image);
    return pinned === undefined ? whole : `${before}${pinned}`;
  });
}
