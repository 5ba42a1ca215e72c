// Makes a certificate for the bench's own names with openssl. Knows no peer.
import { readFileSync } from 'node:fs';

const NAME = 'shop.example.com';
const KEYS = { ecdsa: ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'], rsa: ['rsa:2048'] };

/** Returns files: `cert`, `key`, and `both` in one file, as HAProxy needs them. */
export async function certificate(session, kind = 'ecdsa') {
  const [cert, key] = [session.path(`${kind}-cert.pem`), session.path(`${kind}-key.pem`)];
  const subject = ['-subj', `/CN=${NAME}`, '-addext', `subjectAltName=DNS:${NAME},DNS:bench.test,IP:127.0.0.1`];
  await session.run('openssl', ['req', '-x509', '-newkey', ...KEYS[kind], '-nodes', '-days', '30', ...subject, '-keyout', key, '-out', cert]);
  return { cert, key, both: session.write(`${kind}-both.pem`, readFileSync(cert) + readFileSync(key)) };
}
