package redis

import (
	"slices"
	"strconv"
	"strings"

	mserver "github.com/alicebob/miniredis/v2/server"

	"lockstep/sim"
)

// notifySetting is the only setting that is simulated.
const notifySetting = "notify-keyspace-events"

// settings are the settings that a release of Redis or of Valkey has.
var settings = strings.Fields(`
acl-pubsub-default aclfile acllog-max-len active-defrag-cycle-max active-defrag-cycle-min active-defrag-cycle-us
active-defrag-ignore-bytes active-defrag-max-scan-fields active-defrag-threshold-lower active-defrag-threshold-upper
active-expire-effort activedefrag activerehashing always-show-logo aof-disable-auto-gc aof-load-corrupt-tail-max-size
aof-load-truncated aof-rewrite-cpulist aof-rewrite-incremental-fsync aof-timestamp-enabled aof-use-rdb-preamble
aof_rewrite_cpulist appenddirname appendfilename appendfsync appendonly auto-aof-rewrite-min-size
auto-aof-rewrite-percentage availability-zone bgsave-cpulist bgsave_cpulist bind bind-source-addr bio-cpulist
bio_cpulist busy-reply-threshold client-output-buffer-limit client-query-buffer-limit
cluster-allow-pubsubshard-when-down cluster-allow-reads-when-down cluster-allow-replica-migration
cluster-announce-bus-port cluster-announce-client-ipv4 cluster-announce-client-ipv6 cluster-announce-client-port
cluster-announce-client-tls-port cluster-announce-hostname cluster-announce-human-nodename cluster-announce-ip
cluster-announce-port cluster-announce-tls-port cluster-blacklist-ttl cluster-compatibility-sample-ratio
cluster-config-file cluster-config-save-behavior cluster-databases cluster-enabled cluster-link-sendbuf-limit
cluster-manual-failover-timeout cluster-migration-barrier cluster-node-timeout cluster-port
cluster-preferred-endpoint-type cluster-replica-no-failover cluster-replica-validity-factor
cluster-require-full-coverage cluster-slave-no-failover cluster-slave-validity-factor
cluster-slot-migration-handoff-max-lag-bytes cluster-slot-migration-log-max-len
cluster-slot-migration-write-pause-timeout cluster-slot-stats-enabled commandlog-execution-slower-than
commandlog-large-reply-max-len commandlog-large-request-max-len commandlog-reply-larger-than
commandlog-request-larger-than commandlog-slow-execution-max-len crash-log-enabled crash-memcheck-enabled daemonize
databases dbfilename dir disable-thp dual-channel-replication-enabled dynamic-hz enable-debug-command
enable-module-command enable-protected-configs extended-redis-compatibility hash-max-listpack-entries
hash-max-listpack-value hash-max-ziplist-entries hash-max-ziplist-value hash-seed hide-user-data-from-log
hll-sparse-max-bytes hz ignore-warnings import-mode io-threads io-threads-do-reads jemalloc-bg-thread
key-memory-histograms latency-monitor-threshold latency-tracking latency-tracking-info-percentiles
lazyfree-lazy-eviction lazyfree-lazy-expire lazyfree-lazy-server-del lazyfree-lazy-user-del lazyfree-lazy-user-flush
lfu-decay-time lfu-log-factor list-compress-depth list-max-listpack-size list-max-ziplist-size locale-collate
log-format log-timestamp-format logfile loglevel lookahead lua-time-limit masterauth masteruser
max-new-connections-per-cycle max-new-tls-connections-per-cycle maxclients maxmemory maxmemory-clients
maxmemory-eviction-tenacity maxmemory-policy maxmemory-samples min-replicas-max-lag min-replicas-to-write
min-slaves-max-lag min-slaves-to-write mptcp no-appendfsync-on-rewrite notify-keyspace-events oom-score-adj
oom-score-adj-values pidfile port prefetch-batch-max-size primaryauth primaryuser proc-title-template
propagation-error-behavior protected-mode proto-max-bulk-len rdb-del-sync-files rdb-save-incremental-fsync
rdb-version-check rdbchecksum rdbcompression rdma-bind rdma-completion-vector rdma-port rdma-rx-size repl-backlog-size
repl-backlog-ttl repl-disable-tcp-nodelay repl-diskless-load repl-diskless-sync repl-diskless-sync-delay
repl-diskless-sync-max-replicas repl-mptcp repl-ping-replica-period repl-ping-slave-period repl-timeout
replica-announce-ip replica-announce-port replica-announced replica-full-sync-buffer-limit
replica-ignore-disk-write-errors replica-ignore-maxmemory replica-lazy-flush replica-priority replica-read-only
replica-serve-stale-data replicaof requirepass sanitize-dump-payload save server-cpulist server_cpulist
set-max-intset-entries set-max-listpack-entries set-max-listpack-value set-proc-title shutdown-on-sigint
shutdown-on-sigterm shutdown-timeout slave-announce-ip slave-announce-port slave-ignore-maxmemory slave-lazy-flush
slave-priority slave-read-only slave-serve-stale-data slaveof slot-migration-max-failover-repl-bytes
slowlog-log-slower-than slowlog-max-len socket-mark-id stop-writes-on-bgsave-error stream-idmp-duration
stream-idmp-maxsize stream-node-max-bytes stream-node-max-entries supervised syslog-enabled syslog-facility
syslog-ident tcp-backlog tcp-keepalive timeout tls-auth-clients tls-auth-clients-user tls-auto-reload-interval
tls-ca-cert-dir tls-ca-cert-file tls-cert-file tls-ciphers tls-ciphersuites tls-client-cert-file tls-client-key-file
tls-client-key-file-pass tls-cluster tls-dh-params-file tls-key-file tls-key-file-pass tls-port
tls-prefer-server-ciphers tls-protocols tls-replication tls-session-cache-size tls-session-cache-timeout
tls-session-caching tracking-table-max-keys unixsocket unixsocketgroup unixsocketperm
vset-force-single-threaded-execution zset-max-listpack-entries zset-max-listpack-value zset-max-ziplist-entries
zset-max-ziplist-value
`)

// configure answers CONFIG.
func (s *Server) configure(peer *mserver.Peer, args []string) {
	if len(args) == 0 {
		peer.WriteError("ERR wrong number of arguments for 'config' command")
		return
	}
	rest := args[1:]
	switch strings.ToUpper(args[0]) {
	case "GET":
		s.showSettings(peer, rest)
	case "SET":
		if refusal := s.change(rest); refusal != "" {
			peer.WriteError(refusal)
			return
		}
		peer.WriteOK()
	case "REWRITE":
		peer.WriteError("ERR The server is running without a config file")
	case "RESETSTAT":
		peer.WriteOK()
	}
}

// showSettings answers CONFIG GET.
func (s *Server) showSettings(peer *mserver.Peer, patterns []string) {
	found := false
	for _, pattern := range patterns {
		found = found || sim.Match(strings.ToLower(pattern), notifySetting)
		for _, name := range settings {
			if name != notifySetting && sim.Match(strings.ToLower(pattern), name) {
				peer.WriteError(s.unsimulated("CONFIG GET " + name))
				return
			}
		}
	}
	n := map[bool]int{true: 1}[found]
	peer.Block(func(w *mserver.Writer) {
		w.WriteMapLen(n)
		if found {
			w.WriteBulk(notifySetting)
			w.WriteBulk(s.notify.String())
		}
	})
}

// change carries out CONFIG SET. It returns an error, and then has changed nothing.
func (s *Server) change(pairs []string) (refusal string) {
	if len(pairs)%2 != 0 {
		return "ERR wrong number of arguments for 'config|set' command"
	}
	failed := "ERR CONFIG SET failed (possibly related to argument '" + notifySetting + "') - "
	var value *string
	for i := 0; i < len(pairs); i += 2 {
		switch name := strings.ToLower(pairs[i]); {
		case name == notifySetting && value != nil:
			return failed + "duplicate parameter"
		case name == notifySetting:
			value = &pairs[i+1]
		case slices.Contains(settings, name):
			return s.unsimulated("CONFIG SET " + name)
		default:
			return "ERR Unknown option or number of arguments for CONFIG SET - '" + pairs[i] + "'"
		}
	}
	switch {
	case CheckNotify(*value) != nil:
		return failed + "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."
	case strings.Contains(*value, "m"):
		return s.unsimulated("CONFIG SET " + notifySetting + " with m")
	}
	s.notify = notificationsOf(*value)
	return ""
}

// database returns the number of the database that the client of the executed command has selected.
func (s *Server) database() string {
	if s.executing == nil {
		return "0"
	}
	return strconv.Itoa(s.executing.conn.database)
}
