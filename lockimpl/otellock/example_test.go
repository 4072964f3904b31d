package otellock_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"lockstep/lockimpl/otellock"
	"lockstep/lockimpl/reference"
)

// A program gives its own provider, such as otel.GetMeterProvider().
func Example() {
	server := miniredis.NewMiniRedis()
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{
		Protocol: 2,
		Dialer:   func(context.Context, string, string) (net.Conn, error) { return server.Dial() },
	})
	defer func() { _ = rdb.Close() }()
	reader := sdk.NewManualReader()

	observer, err := otellock.New(sdk.NewMeterProvider(sdk.WithReader(reader)), otellock.WithLockName())
	if err != nil {
		log.Fatal(err)
	}
	client, err := reference.NewClient(rdb, reference.Config{Observer: observer})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	lock, err := client.NewLock("stock")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	hold, err := lock.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := hold.Release(ctx); err != nil {
		log.Fatal(err)
	}

	var figures metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &figures); err != nil {
		log.Fatal(err)
	}
	for _, m := range figures.ScopeMetrics[0].Metrics {
		for _, p := range m.Data.(metricdata.Histogram[float64]).DataPoints {
			outcome, _ := p.Attributes.Value(otellock.OutcomeKey)
			name, _ := p.Attributes.Value(otellock.NameKey)
			fmt.Println(m.Name, m.Unit, name.AsString(), outcome.AsString(), p.Count)
		}
	}
	// Output:
	// lockstep.lock.acquire.duration s stock granted 1
	// lockstep.lock.hold.duration s stock released 1
}
