"""moto_server whose S3 dates objects by a clock that is wrong by as many seconds as a file says, which is read anew for
each object: `moto_clock.py FILE [OPTION...]`. So a test can have old objects without waiting for days."""

import datetime
import sys

import moto.s3.models
from moto.core.utils import utcnow
from moto.server import main


def turned():
    with open(FILE) as file:
        return utcnow() + datetime.timedelta(seconds=float(file.read()))


FILE = sys.argv[1]
moto.s3.models.utcnow = turned
main(sys.argv[2:])
