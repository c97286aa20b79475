/**
 * Where secrets come from. Jobs name them and never carry them: a value is fetched when an attempt
 * starts, handed to its agent and forgotten. It is in no row, no log and no argument.
 */
export interface SecretSource {
  /** For people: which one failed. */
  readonly name: string;
  /**
   * Undefined only when this source surely has no such secret for this tenant; whatever else goes
   * wrong is thrown, so that a source that is down is never taken for one that is empty.
   */
  get(tenant: string, secret: string): Promise<string | undefined>;
}
