import pc from 'picocolors';
import type { EmbeddedDescription } from '../../platform/local-stack/embedded-description.ts';
import type { MinioCredentials } from './minio.ts';

export interface BannerData {
  readonly description: EmbeddedDescription;
  readonly minioConsoleUrl: string;
  readonly minioCredentials: MinioCredentials;
  readonly descriptionFile: string;
  readonly logDirectory: string;
  readonly startSeconds: number;
}

/** What a newcomer needs once everything runs; coloured only when asked. */
export function readyBanner(data: BannerData, colored: boolean): string {
  const { bold, cyan, dim, green } = pc.createColors(colored);
  const { description } = data;
  const tenant = description.tenants[0];
  const rows: [string, string][] = [
    [
      'Sandbox console',
      `${bold(cyan(`${description.portalUrl}/sandbox`))} ${dim('begin here: play a customer')}`,
    ],
    ['Portal', cyan(description.portalUrl)],
    ...description.portalUsers.map(({ role, email, password }): [string, string] => [
      `  as ${role}`,
      `${bold(email)} ${dim('password')} ${bold(password)}`,
    ]),
    ['API', cyan(description.apiUrl)],
    ['API over https', `${cyan(description.publicUrl)} ${dim(`(trust ${description.caPath})`)}`],
    ['Webhook ingress', cyan(`${description.ingressUrl}/upstream/webhook`)],
    ['Temporal UI', cyan(description.temporalUiUrl)],
    [
      'MinIO console',
      `${cyan(data.minioConsoleUrl)} ${dim(`user ${data.minioCredentials.accessKey}, password`)} ${data.minioCredentials.secretKey}`,
    ],
    ['Sample tenant', `${cyan(description.receiverUrl)} ${dim('prints below what it receives')}`],
  ];
  if (tenant !== undefined)
    rows.push(['Demo API key', `${bold(tenant.apiKey)} ${dim(`(${tenant.businessName})`)}`]);
  rows.push(['All of it', data.descriptionFile], ['Logs', data.logDirectory]);
  const width = Math.max(...rows.map(([label]) => label.length));
  const steps = ['npm run sandbox -- message "hello"', 'npm run sandbox -- image'];
  if (tenant !== undefined) {
    steps.push(`curl -H 'Authorization: Bearer ${tenant.apiKey}' ${description.apiUrl}/me`);
  }
  return [
    '',
    `${green(bold('Heliograph is ready'))} ${dim(`after ${data.startSeconds.toFixed(1)} s`)}`,
    '',
    ...rows.map(([label, value]) => `  ${label.padEnd(width)}  ${value}`),
    '',
    '  Send a first message in the sandbox console, or in another terminal:',
    ...steps.map((step) => `    ${step}`),
    '',
    `  ${dim('Ctrl-C stops everything; the data stay. npm start -- --fresh starts empty.')}`,
    '',
    '',
  ].join('\n');
}
