// Package upstream has what simrun upstream needs of the libraries of this module: stories that show their
// known defects in real time, and the code that opens a library in a test for its issue tracker.
package upstream

import (
	"embed"
	"io/fs"

	"lockstep/live/upstream"
)

//go:embed stories/*.yaml
var stories embed.FS

//go:embed redsync/*.go rueidislock/*.go zk/*.go natskv/*.go
var sources embed.FS

// source returns the code that opens a library.
func source(name string) fs.FS {
	files, err := fs.Sub(sources, name)
	if err != nil {
		panic("upstream: " + err.Error())
	}
	return files
}

func constant(text string) func(string) string { return func(string) string { return text } }

// noTest says of a library that there is no Go test of its defects.
const noTest = "no code opens this library in a test of its own yet"

func init() {
	upstream.Register(stories,
		upstream.Library{
			Name: "redsync", Tracker: "github.com/go-redsync/redsync", Form: upstream.Plain, OnRedis: true, Source: source("redsync"),
			Defects: []string{"REDSYNC-late-clean-up", "REDSYNC-interrupted-try", "REDSYNC-set-on-extend", "REDSYNC-asks-often"},
			Modules: []string{"github.com/go-redsync/redsync/v4", "github.com/redis/go-redis/v9"},
			Value: func(lock string) string {
				if lock == "redsync-5-set-on-extend" {
					return "redsyncWith(redsync.WithSetNXOnExtend())"
				}
				return "redsyncWith()"
			},
		},
		upstream.Library{
			Name: "rueidislock", Tracker: "github.com/redis/rueidis", Form: upstream.Plain, OnRedis: true, Source: source("rueidislock"),
			Defects: []string{"RUEIDISLOCK-own-key", "RUEIDISLOCK-gives-a-try-up", "RUEIDISLOCK-one-key", "RUEIDISLOCK-deletes-first", "RUEIDISLOCK-connects-in-a-try"},
			Modules: []string{"github.com/redis/rueidis/rueidislock", "github.com/redis/rueidis"},
			Value: func(lock string) string {
				switch lock {
				case "rueidislock-2":
					return "rueidislockWith(2, 0)"
				case "rueidislock-patient":
					return "rueidislockWith(1, time.Second)"
				}
				return "rueidislockWith(1, 0)"
			},
		},
		upstream.Library{
			Name: "the client of NATS", Tracker: "github.com/nats-io/nats.go", Source: source("natskv"), Value: constant("natsLock"),
			Form:    upstream.Form{Expected: "Expected behavior", Actual: "Observed behavior", Steps: "Steps to reproduce", Server: "Server version", Library: "Client version", Configuration: "Host environment"},
			Defects: []string{"NATS-create-finds-deleted", "NATS-update-takes-ttl"}, Modules: []string{"github.com/nats-io/nats.go", "github.com/nats-io/nats-server/v2"},
		},
		upstream.Library{
			Name: "the server of NATS", Tracker: "github.com/nats-io/nats-server", Lacks: noTest,
			Form:    upstream.Form{Expected: "Expected behavior", Actual: "Observed behavior", Steps: "Steps to reproduce", Server: "Server version", Library: "Client version", Configuration: "Host environment"},
			Defects: []string{"NATS-renews-after-ttl"}, Modules: []string{"github.com/nats-io/nats.go"},
		},
		upstream.Library{
			Name: "the client of etcd", Tracker: "github.com/etcd-io/etcd", Lacks: noTest,
			Form:    upstream.Form{Expected: "What did you expect to happen?", Actual: "What happened?", Steps: "How can we reproduce it (as minimally and precisely as possible)?", Server: "Etcd version", Library: "Client version", Configuration: "Etcd configuration"},
			Defects: []string{"ETCD-try-behind-try", "ETCD-unchecked-unlock", "ETCD-key-stays"}, Modules: []string{"go.etcd.io/etcd/client/v3"},
		},
		upstream.Library{
			Name: "go-zookeeper", Tracker: "github.com/go-zookeeper/zk", Form: upstream.Plain, Source: source("zk"), Value: constant("zkLock"),
			Needs:   ", with `java` on the PATH and the package `zookeeper` of Debian",
			Defects: []string{"ZK-server-behind", "ZK-229", "ZK-close-unsent", "ZK-unlock-forgotten"}, Modules: []string{"github.com/go-zookeeper/zk"},
		},
		upstream.Library{
			Name: "MariaDB", Tracker: "jira.mariadb.org", Lacks: noTest, Form: upstream.Plain,
			Defects: []string{"MYSQL-wait-goes-on"}, Modules: []string{"github.com/go-sql-driver/mysql"},
		},
	)
}
