import type { TargetLists } from '../http/outbound-url.ts';

type ClientCertificate = {
  fingerprint: string;
  certificate: string;
  privateKey: string;
};

/** What a connection is made under; one that was made under other terms is not used. */
export type ConnectionTerms = {
  targets?: TargetLists;
  /** Shown to a server that asks for one. */
  clientCertificate?: ClientCertificate;
};
