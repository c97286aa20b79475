"""A mail server for tests: aiosmtpd with STARTTLS and a password; prints each message as JSON."""

import asyncio
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult


class Printed:
    async def handle_DATA(self, server, session, envelope):
        message = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "text": envelope.content.decode(),
            "tls": session.ssl is not None,
            "user": session.authenticated and session.auth_data.decode(),
        }
        print(json.dumps(message), flush=True)
        return "250 taken"


def check(server, session, envelope, mechanism, auth):
    good = auth.login == b"drover" and auth.password == b"correct-horse"
    return AuthResult(success=good, handled=False, auth_data=auth.login)


mode, cert, key = sys.argv[1:4]
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(cert, key)


def session():
    secure = {"tls_context": context, "require_starttls": True} if mode == "starttls" else {}
    login = {"authenticator": check, "auth_required": mode == "starttls"}
    return SMTP(Printed(), hostname="localhost", **secure, **login)


async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(session, "127.0.0.1", 0)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


asyncio.run(main())
