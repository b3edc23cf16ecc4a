"""Passes connections on to a port of this machine, every piece that comes back a while later, as if it were far away.

    slow_proxy.py LISTEN-PORT TO-PORT MILLISECONDS
"""
import asyncio, sys

listen, to, delay = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) / 1000


async def pump(reader, writer, wait):
    try:
        while piece := await reader.read(65536):
            await asyncio.sleep(wait)
            writer.write(piece)
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()


async def serve(reader, writer):
    there, back = await asyncio.open_connection("127.0.0.1", to)
    await asyncio.gather(pump(reader, back, 0), pump(there, writer, delay))


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", listen, backlog=1024)
    await server.serve_forever()


asyncio.run(main())
