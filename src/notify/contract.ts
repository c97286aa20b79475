/** Channels: ways to tell people. One fails or takes the message; who sends tries again. */
import type { NoticeMessage } from '../model/noticeMessage.ts';

export interface Channel {
  /** Whose jobs may name it; empty: everybody's. */
  readonly tenants: readonly string[];
  /** Throws when the receiver did not surely take it; then the same message is sent again. */
  send(message: NoticeMessage, signal: AbortSignal): Promise<void>;
  /** Throws where its secrets cannot be had: worth a word before the first message. */
  check(): Promise<void>;
}
