import { invalidValue } from '../../platform/request-input.ts';

type Colour = readonly [red: number, green: number, blue: number];

const WHITE: Colour = [255, 255, 255];
/** The surface of the dark scheme, `--surface` of portal.css. */
const DARK_SURFACE: Colour = [0x1c, 0x1f, 0x25];

/** WCAG 2.2: 1.4.3 for text, 1.4.11 for what marks a button. */
const TEXT_CONTRAST = 4.5;
const SHAPE_CONTRAST = 3;

const HEX = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/;

/** Buttons have white text on it. Returns it in small letters. Throws RequestError `invalid_value` with the contrast that it has. */
export function checkAccent(text: string): string {
  const name = text.toLowerCase();
  const colour = colourOf(name);
  if (colour === null) throw invalidValue('The accentColor must be a colour such as #1d4f8f.', 'accentColor');
  const contrast = contrastOf(WHITE, colour);
  if (contrast >= TEXT_CONTRAST) return name;
  const has = (Math.floor(contrast * 100) / 100).toFixed(2);
  throw invalidValue(
    `White text on ${name} has a contrast of ${has}:1; it needs ${TEXT_CONTRAST}:1 (WCAG 1.4.3). Use a darker colour.`,
    'accentColor',
  );
}

/** The colour of the dark scheme: as light as buttons need to be seen there, and no lighter. */
export function darkAccent(name: string): string {
  const colour = colourOf(name);
  if (colour === null) throw new Error(`${name} is no colour`);
  const mixed = (share: number) =>
    colour.map((part) => Math.round(part + (255 - part) * share)) as unknown as Colour;
  const share = Array.from({ length: 101 }, (_, percent) => percent / 100).find(
    (one) => contrastOf(mixed(one), DARK_SURFACE) >= SHAPE_CONTRAST,
  );
  return `#${mixed(share ?? 0)
    .map((part) => part.toString(16).padStart(2, '0'))
    .join('')}`;
}

function colourOf(name: string): Colour | null {
  const [, red, green, blue] = HEX.exec(name) ?? [];
  if (red === undefined || green === undefined || blue === undefined) return null;
  return [Number.parseInt(red, 16), Number.parseInt(green, 16), Number.parseInt(blue, 16)];
}

/** The contrast ratio of WCAG 2.2, from 1 to 21. */
function contrastOf(one: Colour, other: Colour): number {
  const [lighter, darker] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return ((lighter ?? 0) + 0.05) / ((darker ?? 0) + 0.05);
}

function luminance(colour: Colour): number {
  const [red = 0, green = 0, blue = 0] = colour.map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
