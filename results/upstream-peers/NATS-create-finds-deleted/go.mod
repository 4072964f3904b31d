module lockreport

go 1.25

require (
	github.com/nats-io/nats.go v1.55.0
	github.com/nats-io/nats-server/v2 v2.15.2
)
