// Package otellock measures the locks of packages reference and redisson with OpenTelemetry. It needs only
// the API for metrics; the program chooses the SDK and where the figures go. A program that does not import
// this package builds nothing of OpenTelemetry.
//
// Times are in seconds. OutcomeKey has the few values of its type in package lockimpl, so the number of
// series is bounded. Only WithLockName adds an attribute without a bound.
package otellock

import (
	"context"
	"fmt"
	"reflect"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"lockstep/lockimpl"
)

// The instruments. Each but LostHolds has the attribute OutcomeKey.
const (
	// AcquireDuration is a histogram, in s, of the calls that asked for a lock, by
	// lockimpl.AcquireOutcome.
	AcquireDuration = "lockstep.lock.acquire.duration"
	// WaitDuration is a histogram, in s, of the time for which calls waited for other owners, by
	// lockimpl.AcquireOutcome. It leaves out calls that found the lock free, and calls that make a
	// single attempt.
	WaitDuration = "lockstep.lock.wait.duration"
	// HoldDuration is a histogram, in s, of the holds that ended, by lockimpl.HoldOutcome.
	HoldDuration = "lockstep.lock.hold.duration"
	// Renewals is a counter, in {renewal}, of the attempts to renew a hold, by
	// lockimpl.RenewalOutcome.
	Renewals = "lockstep.lock.renewals"
	// LostHolds is a counter, in {hold}, of the holds that were lost.
	LostHolds = "lockstep.lock.lost_holds"
)

// The attributes.
const (
	OutcomeKey = "lockstep.lock.outcome"
	NameKey    = "lockstep.lock.name" // only with WithLockName
)

// The bounds of the histograms, in s.
var (
	callBounds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	holdBounds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
)

// Observer measures the locks of the clients that have it in their Config. It implements
// lockimpl.Observer.
type Observer struct {
	named               bool
	acquire, wait, hold metric.Float64Histogram
	renewals, lost      metric.Int64Counter
}

// Option is a choice of New.
type Option func(*Observer)

// WithLockName adds the name of the lock to every figure. Each name is a series of each
// instrument, so it is for programs whose locks have a few fixed names.
func WithLockName() Option { return func(o *Observer) { o.named = true } }

// New makes the instruments, with a meter that is named after this package. An error is the
// provider's.
func New(provider metric.MeterProvider, options ...Option) (*Observer, error) {
	o := &Observer{}
	for _, set := range options {
		set(o)
	}
	meter := provider.Meter(reflect.TypeFor[Observer]().PkgPath())
	for _, i := range []struct {
		to         *metric.Float64Histogram
		name, what string
		bounds     []float64
	}{
		{&o.acquire, AcquireDuration, "Duration of the calls that asked for a lock.", callBounds},
		{&o.wait, WaitDuration, "Time for which calls waited for other owners of the lock.", callBounds},
		{&o.hold, HoldDuration, "Time for which holds lasted that ended.", holdBounds},
	} {
		h, err := meter.Float64Histogram(i.name, metric.WithUnit("s"), metric.WithDescription(i.what), metric.WithExplicitBucketBoundaries(i.bounds...))
		if err != nil {
			return nil, fmt.Errorf("instrument %s: %w", i.name, err)
		}
		*i.to = h
	}
	for _, i := range []struct {
		to               *metric.Int64Counter
		name, unit, what string
	}{
		{&o.renewals, Renewals, "{renewal}", "Attempts to renew a hold."},
		{&o.lost, LostHolds, "{hold}", "Holds that ended before they were released."},
	} {
		c, err := meter.Int64Counter(i.name, metric.WithUnit(i.unit), metric.WithDescription(i.what))
		if err != nil {
			return nil, fmt.Errorf("instrument %s: %w", i.name, err)
		}
		*i.to = c
	}
	return o, nil
}

// with returns the attributes of a figure, without an outcome if outcome is "".
func (o *Observer) with(lock, outcome string) metric.MeasurementOption {
	var all []attribute.KeyValue
	if outcome != "" {
		all = append(all, attribute.String(OutcomeKey, outcome))
	}
	if o.named {
		all = append(all, attribute.String(NameKey, lock))
	}
	return metric.WithAttributeSet(attribute.NewSet(all...))
}

// AcquireEnded implements lockimpl.Observer.
func (o *Observer) AcquireEnded(ctx context.Context, e lockimpl.AcquireEnded) {
	with := o.with(e.Lock, string(e.Outcome))
	o.acquire.Record(ctx, e.Took.Seconds(), with)
	if e.Waited > 0 {
		o.wait.Record(ctx, e.Waited.Seconds(), with)
	}
}

// RenewalEnded implements lockimpl.Observer.
func (o *Observer) RenewalEnded(e lockimpl.RenewalEnded) {
	o.renewals.Add(context.Background(), 1, o.with(e.Lock, string(e.Outcome)))
}

// HoldEnded implements lockimpl.Observer.
func (o *Observer) HoldEnded(e lockimpl.HoldEnded) {
	o.hold.Record(context.Background(), e.Held.Seconds(), o.with(e.Lock, string(e.Outcome)))
	if e.Outcome == lockimpl.HoldLost {
		o.lost.Add(context.Background(), 1, o.with(e.Lock, ""))
	}
}
