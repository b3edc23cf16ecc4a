package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// Connections that hold opens at a time.
const opening = 64

// holder counts what becomes of connections that are held.
type holder struct {
	Connections int   `json:"connections"`
	Lost        int64 `json:"lost"`
	Answered    int64 `json:"answered"`
}

// hold opens connections, and makes one call on every other one. Then none of them does anything but to answer pings. It prints `held`
// when all are open, and after the time how many were lost meanwhile, and how many answer a call.
func hold(address string, connections int, duration time.Duration) {
	held := holder{Connections: connections}
	ctx, cancel := context.WithCancel(context.Background())
	// What a connection buffers here is not what is measured, but ten thousand of them share a machine with the server.
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithIdleTimeout(0), grpc.WithDisableServiceConfig(),
		grpc.WithReadBufferSize(512), grpc.WithWriteBufferSize(512), grpc.WithSharedWriteBuffer(true),
	}
	clients := make([]*grpc.ClientConn, connections)
	each := func(do func(at int)) {
		var running sync.WaitGroup
		places := make(chan struct{}, opening)
		for at := range clients {
			places <- struct{}{}
			running.Go(func() { do(at); <-places })
		}
		running.Wait()
	}
	healthy := func(connection *grpc.ClientConn) bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		answer, err := grpc_health_v1.NewHealthClient(connection).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		return err == nil && answer.Status == grpc_health_v1.HealthCheckResponse_SERVING
	}
	open := func(connection *grpc.ClientConn) {
		for state := connection.GetState(); state != connectivity.Ready; state = connection.GetState() {
			// Again too, if the server has closed it.
			connection.Connect()
			if !connection.WaitForStateChange(ctx, state) {
				return
			}
		}
	}
	each(func(at int) {
		connection, err := grpc.NewClient("passthrough:///"+address, options...)
		check(err)
		clients[at] = connection
		open(connection)
		if at%2 == 0 && !healthy(connection) {
			atomic.AddInt64(&held.Lost, 1)
		}
	})
	for _, connection := range clients {
		go func() {
			for connection.WaitForStateChange(ctx, connectivity.Ready) {
				atomic.AddInt64(&held.Lost, 1)
				open(connection)
			}
		}()
	}
	fmt.Println("held")
	time.Sleep(duration)
	cancel()
	each(func(at int) {
		if healthy(clients[at]) {
			atomic.AddInt64(&held.Answered, 1)
		}
	})
	check(json.NewEncoder(os.Stdout).Encode(held))
}
