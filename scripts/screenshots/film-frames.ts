import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';

const CAPTION = {
  top: '0',
  right: '0',
  height: '50px',
  paddingLeft: '18px',
  zIndex: '99999',
  background: '#1f2430',
  color: '#fff',
  font: '600 21px/50px sans-serif',
};
const POINTER = {
  width: '26px',
  height: '26px',
  boxSizing: 'border-box',
  zIndex: '99998',
  borderRadius: '50%',
  background: 'rgba(240,150,20,.55)',
  border: '2px solid #fff',
};
const WEBP_QUALITY = 72;

/** The part of the window that the film shows: `left` hides a page's navigation. */
type Window = { left: number; width: number; height: number };

type Frame = { file: string; ms: number };

/** Takes the frames of a film one by one, with a caption and a pointer that it draws into the page. */
export class Film {
  readonly #directory = mkdtempSync(join(tmpdir(), 'heliograph-film-'));
  readonly #frames: Frame[] = [];
  #caption = '';

  /** The text above the following frames. */
  say(caption: string): void {
    this.#caption = caption;
  }

  /** One frame that stays for so long. */
  async take(page: Page, { left, width, height }: Window, ms: number): Promise<void> {
    await draw(page, 'film-caption', this.#caption, { ...CAPTION, left: `${left}px` });
    const file = join(this.#directory, `${String(this.#frames.length).padStart(3, '0')}.png`);
    writeFileSync(file, await page.screenshot({ clip: { x: left, y: 0, width, height } }));
    this.#frames.push({ file, ms });
  }

  /** Writes the frames as an animated WebP that repeats, and returns how long one turn takes. */
  write(path: string): number {
    const frames = this.#frames.flatMap(({ file, ms }) => ['-d', String(ms), file]);
    const options = ['-loop', '0', '-min_size', '-mixed', '-q', String(WEBP_QUALITY), '-m', '6'];
    const { status, error, stderr } = spawnSync('img2webp', [...options, ...frames, '-o', path]);
    if (error !== undefined)
      throw new Error('img2webp is missing: it is in the package webp of Debian and Homebrew.');
    if (status !== 0) throw new Error(`img2webp failed: ${String(stderr)}`);
    return this.#frames.reduce((sum, { ms }) => sum + ms, 0);
  }

  /** Keeps the frames where `write` found them, for a look at each. */
  directory(): string {
    return this.#directory;
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true });
  }
}

/** Moves the drawn pointer to the middle of an element. */
export async function pointAt(page: Page, target: Locator): Promise<void> {
  await target.scrollIntoViewIfNeeded();
  const box = await target.boundingBox();
  if (box === null) throw new Error('there is nothing to point at');
  const [left, top] = [box.x + Math.min(box.width / 2, 120) - 13, box.y + box.height / 2 - 13];
  await draw(page, 'film-pointer', '', { ...POINTER, left: `${left}px`, top: `${top}px` });
}

/**
 * Puts an element over the page. Styles are set one by one, because the portal's policy refuses style attributes; as a text,
 * because this program is compiled without the names of a browser.
 */
async function draw(
  page: Page,
  id: string,
  text: string,
  style: Readonly<Record<string, string>>,
): Promise<void> {
  await page.evaluate(`{
    const element = document.getElementById('${id}') ?? document.body.appendChild(document.createElement('div'));
    Object.assign(element, { id: '${id}', textContent: ${JSON.stringify(text)} });
    Object.assign(element.style, ${JSON.stringify({ position: 'fixed', pointerEvents: 'none', ...style })});
  }`);
}
