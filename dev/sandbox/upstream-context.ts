import type { AccountObjects } from './account-objects.ts';
import type { Bill } from './bill.ts';
import type { ChatLog } from './chat-log.ts';
import type { PhoneDirectory } from './demo-accounts.ts';
import type { FaultRegister } from './fault-register.ts';
import type { GroupRegister } from './group-register.ts';
import type { MediaStore } from './media-store.ts';
import type { MediaUrls } from './media-url.ts';
import type { RegistrationRegister } from './registration-register.ts';
import type { RoutingRegister } from './routing-roles.ts';
import type { SignupRegister } from './signup-register.ts';
import type { StatusLadder } from './status-ladder.ts';
import type { UploadSessions } from './upload-sessions.ts';
import type { BoundedList, LoggedRequest, ReadReceipt, SentMessage } from './upstream-records.ts';
import type { WebhookSender } from './upstream-webhook-sender.ts';

/** What the routes of one stand-in platform share. */
export type UpstreamContext = {
  /** The only token that is accepted; without it any token is. */
  accessToken?: string;
  /** Makes the token of the app, with its id. */
  appSecret: string;
  /** Where the webhooks go. */
  callbackUrl: string;
  phones: PhoneDirectory;
  faults: FaultRegister;
  requests: BoundedList<LoggedRequest>;
  sent: BoundedList<SentMessage>;
  /** Messages of customers that were marked as read. */
  receipts: BoundedList<ReadReceipt>;
  bill: Bill;
  chat: ChatLog;
  groups: GroupRegister;
  objects: AccountObjects;
  uploads: UploadSessions;
  media: MediaStore;
  mediaUrls: MediaUrls;
  routing: RoutingRegister;
  signup: SignupRegister;
  registrations: RegistrationRegister;
  sender: WebhookSender;
  ladder: StatusLadder;
  /** Aborted when the server stops. */
  signal: AbortSignal;
};
