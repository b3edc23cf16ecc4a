package main

import (
	"context"
	"io"
	"math"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/operator-framework/operator-registry/pkg/api"
)

// rawMessage is an encoded message. Answers stay as they came, so that bytes are compared.
type rawMessage struct{ bytes []byte }

// rawCodec is the codec of protobuf, but leaves a rawMessage as it is.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(message any) (mem.BufferSlice, error) {
	if raw, ok := message.(rawMessage); ok {
		return mem.BufferSlice{mem.SliceBuffer(raw.bytes)}, nil
	}
	bytes, err := proto.Marshal(message.(proto.Message))
	return mem.BufferSlice{mem.SliceBuffer(bytes)}, err
}

func (rawCodec) Unmarshal(data mem.BufferSlice, message any) error {
	if raw, ok := message.(*rawMessage); ok {
		raw.bytes = data.Materialize()
		return nil
	}
	return proto.Unmarshal(data.Materialize(), message.(proto.Message))
}

var _ encoding.CodecV2 = rawCodec{}

func dial(address string) *grpc.ClientConn {
	connection, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(math.MaxInt32)))
	check(err)
	return connection
}

// receive calls a method and passes on each message that comes. Every method is called as a stream, because then one function does for all.
func receive(ctx context.Context, connection *grpc.ClientConn, method string, request any, each func([]byte)) error {
	stream, err := connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return err
	}
	// After EOF the server has answered already, and says below why.
	if err := stream.SendMsg(request); err != nil && err != io.EOF {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		var message rawMessage
		if err := stream.RecvMsg(&message); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		each(message.bytes)
	}
}

func listBundles(connection *grpc.ClientConn) []*api.Bundle {
	var bundles []*api.Bundle
	check(receive(context.Background(), connection, "/api.Registry/ListBundles", rawMessage{}, func(message []byte) {
		bundle := &api.Bundle{}
		check(proto.Unmarshal(message, bundle))
		bundles = append(bundles, bundle)
	}))
	return bundles
}
