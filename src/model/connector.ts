/** What a connector on a login node is told to run, and what it brings back. */

export interface ConnectorCommand {
  id: string;
  /** A program with its arguments. */
  argv: string[];
  stdin: string;
  timeoutMs: number;
}

/** `lost`: it may have run. `not-started`: it did not. */
export type ConnectorResult =
  | { id: string; kind: 'ended'; code: number; stdout: string; stderr: string }
  | { id: string; kind: 'lost'; reason: string }
  | { id: string; kind: 'not-started'; reason: string };

/** Named limits of what connectors bring. */
export const CONNECTOR_LIMITS = {
  /** Results in one call. */
  results: 200,
  /** What a command may print, as JSON with its errors: the list of some 40,000 jobs. */
  resultBytes: 8 * 1024 * 1024,
} as const;
