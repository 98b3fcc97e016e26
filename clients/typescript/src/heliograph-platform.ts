import { type Options, PlatformApi } from './generated/platform/sdk.gen.js';
import type {
  ListOperationEventsData,
  ListPlatformAuditData,
  ListSetupLinksData,
  ListTenantsData,
} from './generated/platform/types.gen.js';
import { at, entriesOf } from './paging.js';

/** The platform API, for the operator's own program: a method for each operation, and lists as iterators. */
export class HeliographPlatform extends PlatformApi {
  /** Every tenant of `listTenants`. */
  eachTenant(options: Options<ListTenantsData, true> = {}) {
    const { query } = options;
    return entriesOf((cursor) => this.listTenants(at(options, query, cursor)), query?.cursor);
  }

  /** Every link of `listSetupLinks`. */
  eachSetupLink(options: Options<ListSetupLinksData, true>) {
    const { query } = options;
    return entriesOf((cursor) => this.listSetupLinks(at(options, query, cursor)), query?.cursor);
  }

  /** Every event of `listOperationEvents`, to the end of the feed. */
  eachOperationEvent(options: Options<ListOperationEventsData, true> = {}) {
    const { query } = options;
    return entriesOf((cursor) => this.listOperationEvents(at(options, query, cursor)), query?.cursor);
  }

  /** Every entry of `listPlatformAudit`. */
  eachPlatformAuditEntry(options: Options<ListPlatformAuditData, true> = {}) {
    const { query } = options;
    return entriesOf((cursor) => this.listPlatformAudit(at(options, query, cursor)), query?.cursor);
  }
}
