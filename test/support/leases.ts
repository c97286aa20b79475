/** Short leases for tests, as settings. Everything else is as in production. */

/** A worker is SUSPECT soon; its attempts are safe for a minute. */
export const QUICK_SUSPECT = {
  DROVER_LEASES_WORKER_MS: '2000',
  DROVER_LEASES_ATTEMPT_MS: '60000',
  DROVER_LEASES_LONG_POLL_MS: '500',
  DROVER_LOOPS_LEASES_MS: '200',
};

/** An attempt is lost after twelve seconds, and its processes are gone four before that. */
export const QUICK_LOSS = {
  ...QUICK_SUSPECT,
  DROVER_LEASES_ATTEMPT_MS: '12000',
  DROVER_LEASES_KILL_MARGIN_MS: '4000',
};
