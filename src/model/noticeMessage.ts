/** A notice as it is sent, for people and for programs. */
import type { NoticeKind, QueuedNotice } from './notice.ts';

export interface NoticeMessage {
  id: string;
  kind: NoticeKind;
  atMs: number;
  cluster: string;
  tenant: string;
  job: string | null;
  /** One line. */
  subject: string;
  lines: string[];
  facts: QueuedNotice['facts'];
  /** Of a job that has ended. */
  receipt: object | null;
}
