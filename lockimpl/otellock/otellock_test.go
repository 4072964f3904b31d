package otellock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"lockstep/lockimpl"
)

// observed reports some calls, renewals and holds to an observer.
func observed(o *Observer) {
	for _, lock := range []string{"orders", "stock"} {
		o.AcquireEnded(context.Background(), lockimpl.AcquireEnded{Lock: lock, Outcome: lockimpl.AcquireGranted, Took: 3 * time.Second, Waited: 2 * time.Second})
	}
	o.AcquireEnded(context.Background(), lockimpl.AcquireEnded{Lock: "orders", Outcome: lockimpl.AcquireBusy, Took: 4 * time.Millisecond})
	for _, outcome := range []lockimpl.RenewalOutcome{lockimpl.RenewalRenewed, lockimpl.RenewalFailed, lockimpl.RenewalRenewed, lockimpl.RenewalGone} {
		o.RenewalEnded(lockimpl.RenewalEnded{Lock: "orders", Outcome: outcome})
	}
	o.HoldEnded(lockimpl.HoldEnded{Lock: "orders", Outcome: lockimpl.HoldLost, Held: time.Minute})
	o.HoldEnded(lockimpl.HoldEnded{Lock: "stock", Outcome: lockimpl.HoldReleased, Held: time.Hour})
}

// figures reads every series as one line.
func figures(t *testing.T, options ...Option) (lines []string, units map[string]string) {
	t.Helper()
	reader := sdk.NewManualReader()
	o, err := New(sdk.NewMeterProvider(sdk.WithReader(reader)), options...)
	if err != nil {
		t.Fatal(err)
	}
	observed(o)
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	units = map[string]string{}
	for _, scope := range all.ScopeMetrics {
		if want := reflect.TypeFor[Observer]().PkgPath(); scope.Scope.Name != want {
			t.Errorf("the meter is named %q, want %q", scope.Scope.Name, want)
		}
		for _, m := range scope.Metrics {
			if units[m.Name] = m.Unit; m.Description == "" {
				t.Errorf("%s has no description", m.Name)
			}
			add := func(attributes attribute.Set, figure string) {
				lines = append(lines, fmt.Sprintf("%s{%s} %s", m.Name, attributes.Encoded(attribute.DefaultEncoder()), figure))
			}
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, fmt.Sprintf("%d times, %vs, bounds up to %v", p.Count, p.Sum, slices.Max(p.Bounds)))
				}
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, fmt.Sprint(p.Value))
				}
			default:
				t.Errorf("%s is a %T", m.Name, data)
			}
		}
	}
	slices.Sort(lines)
	return lines, units
}

func TestWhatIsMeasured(t *testing.T) {
	for what, c := range map[string]struct {
		options []Option
		want    string
	}{
		"without names": {nil, `
lockstep.lock.acquire.duration{lockstep.lock.outcome=busy} 1 times, 0.004s, bounds up to 60
lockstep.lock.acquire.duration{lockstep.lock.outcome=granted} 2 times, 6s, bounds up to 60
lockstep.lock.hold.duration{lockstep.lock.outcome=lost} 1 times, 60s, bounds up to 3600
lockstep.lock.hold.duration{lockstep.lock.outcome=released} 1 times, 3600s, bounds up to 3600
lockstep.lock.lost_holds{} 1
lockstep.lock.renewals{lockstep.lock.outcome=failed} 1
lockstep.lock.renewals{lockstep.lock.outcome=gone} 1
lockstep.lock.renewals{lockstep.lock.outcome=renewed} 2
lockstep.lock.wait.duration{lockstep.lock.outcome=granted} 2 times, 4s, bounds up to 60
`},
		"with names": {[]Option{WithLockName()}, `
lockstep.lock.acquire.duration{lockstep.lock.name=orders,lockstep.lock.outcome=busy} 1 times, 0.004s, bounds up to 60
lockstep.lock.acquire.duration{lockstep.lock.name=orders,lockstep.lock.outcome=granted} 1 times, 3s, bounds up to 60
lockstep.lock.acquire.duration{lockstep.lock.name=stock,lockstep.lock.outcome=granted} 1 times, 3s, bounds up to 60
lockstep.lock.hold.duration{lockstep.lock.name=orders,lockstep.lock.outcome=lost} 1 times, 60s, bounds up to 3600
lockstep.lock.hold.duration{lockstep.lock.name=stock,lockstep.lock.outcome=released} 1 times, 3600s, bounds up to 3600
lockstep.lock.lost_holds{lockstep.lock.name=orders} 1
lockstep.lock.renewals{lockstep.lock.name=orders,lockstep.lock.outcome=failed} 1
lockstep.lock.renewals{lockstep.lock.name=orders,lockstep.lock.outcome=gone} 1
lockstep.lock.renewals{lockstep.lock.name=orders,lockstep.lock.outcome=renewed} 2
lockstep.lock.wait.duration{lockstep.lock.name=orders,lockstep.lock.outcome=granted} 1 times, 2s, bounds up to 60
lockstep.lock.wait.duration{lockstep.lock.name=stock,lockstep.lock.outcome=granted} 1 times, 2s, bounds up to 60
`},
	} {
		t.Run(what, func(t *testing.T) {
			got, units := figures(t, c.options...)
			if text := "\n" + strings.Join(got, "\n") + "\n"; text != c.want {
				t.Errorf("got %s\nwant %s", text, c.want)
			}
			if want := map[string]string{
				AcquireDuration: "s", WaitDuration: "s", HoldDuration: "s", Renewals: "{renewal}", LostHolds: "{hold}",
			}; !maps.Equal(units, want) {
				t.Errorf("units %v, want %v", units, want)
			}
		})
	}
}

var errFull = errors.New("no more instruments")

// full is a provider whose meter refuses to make the instrument of one name.
type full struct {
	noop.MeterProvider
	name string
}

func (f full) Meter(string, ...metric.MeterOption) metric.Meter { return fullMeter{name: f.name} }

type fullMeter struct {
	noop.Meter
	name string
}

func (m fullMeter) Float64Histogram(name string, options ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	if name == m.name {
		return nil, errFull
	}
	return m.Meter.Float64Histogram(name, options...)
}

func (m fullMeter) Int64Counter(name string, options ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	if name == m.name {
		return nil, errFull
	}
	return m.Meter.Int64Counter(name, options...)
}

func TestAnErrorNamesItsInstrument(t *testing.T) {
	for _, name := range []string{AcquireDuration, LostHolds} {
		if _, err := New(full{name: name}); !errors.Is(err, errFull) || !strings.Contains(fmt.Sprint(err), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The page for operators names every instrument, attribute and outcome.
func TestThePageForOperatorsNamesThem(t *testing.T) {
	text, err := os.ReadFile("../../docs/production.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		AcquireDuration, WaitDuration, HoldDuration, Renewals, LostHolds, OutcomeKey, NameKey,
		string(lockimpl.AcquireGranted), string(lockimpl.AcquireBusy), string(lockimpl.AcquireCanceled), string(lockimpl.AcquireFailed), string(lockimpl.AcquireUnknown),
		string(lockimpl.RenewalRenewed), string(lockimpl.RenewalFailed), string(lockimpl.RenewalGone),
		string(lockimpl.HoldReleased), string(lockimpl.HoldLost), string(lockimpl.HoldClosed),
	} {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/production.md does not name %s", name)
		}
	}
}
