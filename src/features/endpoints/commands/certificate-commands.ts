import { Command } from 'commander';
import { adminAction, alignedFields } from '../../../platform/cli/admin-action.ts';
import { readNamedFile, readStdin } from '../../../platform/cli/given-text.ts';
import type { CertificateView } from '../../../platform/crypto/client-certificate.ts';
import { invalidValue } from '../../../platform/request-input.ts';
import { setClientCertificate } from '../endpoint-certificate.ts';
import { endpointForOperator } from '../endpoints.ts';

type CertificateOptions = { certificate?: string; keyStdin?: true; remove?: true };

export function endpointCertificateCommand(): Command {
  const command = new Command('client-certificate')
    .description('set or remove the certificate that is shown to a server that asks for one (mutual TLS)')
    .argument('<id>')
    .option(
      '--certificate <file>',
      'the certificate in PEM, its chain behind it; - reads it from standard input, with the key',
    )
    .option('--key-stdin', 'read its private key in PEM, without passphrase, from standard input')
    .option('--remove', 'remove the client certificate');
  const example = 'endpoint client-certificate 3 --certificate client.pem --key-stdin < client.key';
  return adminAction<CertificateOptions>(command, example, async ({ tools, args, options }) => {
    const { id, wabaId } = await endpointForOperator(tools, args[0] ?? '');
    const clientCertificate = await setClientCertificate(tools, wabaId, id, await givenCertificate(options));
    return {
      json: { id, clientCertificate },
      text: alignedFields([['id', id], ...certificateRows(clientCertificate)]),
    };
  });
}

async function givenCertificate({ certificate, keyStdin, remove }: CertificateOptions) {
  if (remove) {
    if (certificate === undefined && !keyStdin) return null;
    throw invalidValue('--remove goes with no other option.');
  }
  if (certificate === undefined || !keyStdin) {
    throw invalidValue('Give --certificate and --key-stdin, or --remove.');
  }
  if (certificate === '-') return parted(await readStdin());
  return { certificate: await readNamedFile(certificate), privateKey: await readStdin() };
}

function parted(text: string): { certificate: string; privateKey: string } {
  const blocks = text.match(/-----BEGIN [A-Z0-9 ]+-----[^-]+-----END [A-Z0-9 ]+-----/g) ?? [];
  const ofKind = (kind: RegExp) => blocks.filter((block) => kind.test(block)).join('\n');
  return { certificate: ofKind(/^-----BEGIN CERTIFICATE/), privateKey: ofKind(/^-----BEGIN .*PRIVATE KEY/) };
}

export function certificateRows(certificate: CertificateView | null): [string, unknown][] {
  if (certificate === null) return [['client certificate', 'none']];
  const { subject, issuer, fingerprint, expiresAt } = certificate;
  return [
    ['client certificate', subject],
    ['  issued by', issuer],
    ['  SHA-256', fingerprint],
    ['  expires', expiresAt],
  ];
}
