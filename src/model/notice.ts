/** A notice: something people asked to be told, kept until their channel has taken it. */
import type { JobId } from './ids.ts';
import { NOTICES } from './jobParts.ts';

export const NOTICE_KINDS = [...NOTICES, 'budget'] as const;
export type NoticeKind = (typeof NOTICE_KINDS)[number];

/** Who is told of what without a job naming it. */
export interface TellRule {
  to: string;
  on: readonly NoticeKind[];
}

export interface QueuedNotice {
  /** Sent along, so that a receiver knows one that comes twice. */
  id: string;
  tenant: string;
  channel: string;
  kind: NoticeKind;
  /** Null: it is about a budget. */
  job: JobId | null;
  /** Small facts for a person: name, reason, exit code. */
  facts: Record<string, string | number | boolean | null>;
  createdAtMs: number;
  tries: number;
  nextTryAtMs: number;
  /** Why the last try failed; never an address, which may be a secret. */
  lastError: string;
}
