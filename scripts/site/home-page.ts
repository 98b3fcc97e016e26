import { type Page, withFrontmatter } from './markdown.ts';

/** The first page: docs/README.md below a few ways in. */
export function homePage({ text }: Page): Page {
  const feature = (title: string, details: string, link: string) => ({ title, details, link });
  const values = {
    layout: 'home',
    title: 'Documentation',
    hero: {
      name: 'Heliograph',
      text: 'WhatsApp events to your server, and back',
      tagline: 'Ordered, signed, durable webhooks and a REST API in front of the WhatsApp Business Platform.',
      image: { src: '/icon.svg', alt: '' },
      actions: [
        { theme: 'brand', text: 'Quick start', link: '/tenants/quick-start/' },
        { theme: 'alt', text: 'Webhooks', link: '/tenants/webhooks' },
        { theme: 'alt', text: 'API reference', link: '/api/' },
      ],
    },
    features: [
      feature(
        'Receive',
        'Signatures, retries, order, replays: all that your endpoint can rely on.',
        '/tenants/webhooks',
      ),
      feature(
        'Send',
        'Messages, media, templates, payments by REST, once per idempotency key.',
        '/tenants/api',
      ),
      feature('Event catalogue', 'Each event with its schema and a sample.', '/events/'),
      feature('Errors', 'Each code with what it means and what you do about it.', '/errors'),
      feature(
        'Operate',
        'Install, upgrade, back up, monitor and scale an installation.',
        '/operators/operations',
      ),
      feature('Contribute', 'The tour of the code, the architecture and the decisions.', '/tour'),
    ],
  };
  return {
    path: 'index.md',
    text: withFrontmatter(
      values,
      text.replace('# Documentation\n', '## All pages\n').replaceAll(/^## (?!All pages)/gm, '### '),
    ),
  };
}
