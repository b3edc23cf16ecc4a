"""Passes requests on to an S3 server, with another time in the answers: `s3_clock.py PORT HOST:PORT FILE`.

The time of the answers runs sixty times faster from the start of this program on. Each line of the file is a step:
`seconds-since-1970 offset-in-seconds`, the offset of what was written and asked from then on.

Why every catalog stays correct: a publication may take an hour and a collector waits two hours, by the time of these
answers. A publication that takes a minute here takes an hour of that time, and starts again. A step ahead by an hour
makes a list of garbage look an hour older, but also each publication that is under way an hour longer. A step back
lengthens the waits only. A date that is cut to seconds makes an object look older by less than a minute.
"""

import email.utils
import re
import sys
import time

from s3_proxy import Proxy, serve

SPEED = 60
BASE = time.time()
LISTED = re.compile(rb"<LastModified>(.*?)</LastModified>")
SIGNATURE = {"authorization", "x-amz-date", "x-amz-security-token"}


def turned(at):
    with open(sys.argv[3]) as file:
        steps = [tuple(map(float, line.split())) for line in file]
    offset = ([0] + [offset for since, offset in steps if since <= at])[-1]
    return BASE + (at - BASE) * (SPEED if at > BASE else 1) + offset


def listed(match):
    date, _, fraction = match[1].decode().rstrip("Z").partition(".")
    at = email.utils.mktime_tz((*time.strptime(date, "%Y-%m-%dT%H:%M:%S")[:9], 0)) + float("0." + (fraction or "0"))
    return time.strftime("<LastModified>%Y-%m-%dT%H:%M:%S.000Z</LastModified>", time.gmtime(turned(at))).encode()


class Clock(Proxy):
    def answer(self):
        answer, content = self.ask(self.body(), SIGNATURE)
        date = answer.msg["last-modified"]
        if date:
            del answer.msg["last-modified"]
            answer.msg["last-modified"] = http_date(email.utils.mktime_tz(email.utils.parsedate_tz(date)))
        if b"<ListBucketResult" in content[:200]:
            content = LISTED.sub(listed, content)
        self.give(answer, content)

    def date_time_string(self, timestamp=None):
        return http_date(timestamp or time.time())


def http_date(at):
    return email.utils.formatdate(turned(at), usegmt=True)


serve(Clock)
