/** Which addresses may be asked for something that decides who comes in. */

/** https, or http that stays on this machine; nobody's password in it. */
export function isSafeUrl(text: string): boolean {
  const url = URL.parse(text);
  if (!url || url.username !== '' || url.password !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isThisMachine(url.hostname));
}

function isThisMachine(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}
