/** What programs started for a provider get of the controller's environment. */

/** All of it but Drover's own settings, which may be secrets. */
export function ownEnvironment(): NodeJS.ProcessEnv {
  const entries = Object.entries(process.env).filter(([name]) => !name.startsWith('DROVER_'));
  return { ...Object.fromEntries(entries), LC_ALL: 'C' };
}
