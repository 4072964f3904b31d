// Package upstream has what evidence upstream needs of the libraries of this module: stories that show their
// known defects in real time, and the code that opens a library in a test for its issue tracker.
package upstream

import (
	"embed"
	"io/fs"

	"lockstep/live/upstream"
)

//go:embed stories/*.yaml
var stories embed.FS

//go:embed etcdmutex/*.go natskv/*.go redsync/*.go rueidislock/*.go userlock/*.go zk/*.go
var sources embed.FS

// source returns the code that opens a library.
func source(name string) fs.FS {
	files, err := fs.Sub(sources, name)
	if err != nil {
		panic("upstream: " + err.Error())
	}
	return files
}

const needsRedis = ", with `redis-server` on the PATH"

// noTest says of a library that there is no Go test of its defects.
const noTest = "no code opens this library in a test of its own yet"

// Register gives the command upstream of evidence the libraries of this module. Call it once, before
// the command.
func Register() {
	upstream.Register(stories,
		upstream.Library{
			Name: "redsync", Tracker: "github.com/go-redsync/redsync", Form: upstream.Plain, Source: source("redsync"), Needs: needsRedis, Protocol: true, Refuse: true,
			Defects: []string{"REDSYNC-late-clean-up", "REDSYNC-interrupted-try", "REDSYNC-set-on-extend", "REDSYNC-asks-often"},
			Modules: []string{"github.com/go-redsync/redsync/v4", "github.com/redis/go-redis/v9"},
		},
		upstream.Library{
			Name: "rueidislock", Tracker: "github.com/redis/rueidis", Form: upstream.Plain, Source: source("rueidislock"), Needs: needsRedis, Protocol: true, Refuse: true,
			Defects: []string{"RUEIDISLOCK-own-key", "RUEIDISLOCK-gives-a-try-up", "RUEIDISLOCK-one-key", "RUEIDISLOCK-deletes-first", "RUEIDISLOCK-told-late", "RUEIDISLOCK-connects-in-a-try"},
			Modules: []string{"github.com/redis/rueidis/rueidislock", "github.com/redis/rueidis"},
		},
		upstream.Library{
			Name: "the client of NATS", Tracker: "github.com/nats-io/nats.go", Source: source("natskv"), TimeToLive: true,
			Form:    upstream.Form{Expected: "Expected behavior", Actual: "Observed behavior", Steps: "Steps to reproduce", Server: "Server version", Library: "Client version", Configuration: "Host environment"},
			Defects: []string{"NATS-create-finds-deleted", "NATS-update-takes-ttl"}, Modules: []string{"github.com/nats-io/nats.go", "github.com/nats-io/nats-server/v2"},
		},
		upstream.Library{
			Name: "the server of NATS", Tracker: "github.com/nats-io/nats-server", Lacks: noTest,
			Form:    upstream.Form{Expected: "Expected behavior", Actual: "Observed behavior", Steps: "Steps to reproduce", Server: "Server version", Library: "Client version", Configuration: "Host environment"},
			Defects: []string{"NATS-renews-after-ttl"}, Modules: []string{"github.com/nats-io/nats.go"},
		},
		upstream.Library{
			Name: "the client of etcd", Tracker: "github.com/etcd-io/etcd", Source: source("etcdmutex"), Places: true,
			Form:    upstream.Form{Expected: "What did you expect to happen?", Actual: "What happened?", Steps: "How can we reproduce it (as minimally and precisely as possible)?", Server: "Etcd version", Library: "Client version", Configuration: "Etcd configuration"},
			Defects: []string{"ETCD-unchecked-unlock", "ETCD-key-stays", "ETCD-told-late"}, Modules: []string{"go.etcd.io/etcd/client/v3", "go.etcd.io/etcd/server/v3"},
		},
		upstream.Library{
			Name: "go-zookeeper", Tracker: "github.com/go-zookeeper/zk", Form: upstream.Plain, Source: source("zk"), Protocol: true, Places: true, Delete: true,
			Needs:   ", with `java` on the PATH and the package `zookeeper` of Debian",
			Defects: []string{"ZK-server-behind", "ZK-229", "ZK-close-unsent", "ZK-unlock-forgotten", "ZK-own-node"}, Modules: []string{"github.com/go-zookeeper/zk"},
		},
		upstream.Library{
			Name: "MariaDB", Tracker: "jira.mariadb.org", Form: upstream.Plain, Source: source("userlock"), Places: true,
			Needs:   ", with `mariadbd` and `mariadb-install-db` on the PATH",
			Defects: []string{"MYSQL-wait-goes-on"}, Modules: []string{"github.com/go-sql-driver/mysql"},
		},
	)
}
