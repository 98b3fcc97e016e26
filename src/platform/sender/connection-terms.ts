import type { TargetLists } from '../http/outbound-url.ts';

/** What a certificate of ours needs to be shown in a handshake. */
type ClientCertificate = {
  /** Of the certificate and so of its key. */
  fingerprint: string;
  /** A chain in PEM. */
  certificate: string;
  privateKey: string;
};

/** What a connection is made under; one that was made under other terms is not used. */
export type ConnectionTerms = {
  /** Of the WABA that it is for. */
  targets?: TargetLists;
  /** Shown to a server that asks for one. */
  clientCertificate?: ClientCertificate;
};
