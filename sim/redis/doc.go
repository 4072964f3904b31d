// Package redis is the Redis server of the world: miniredis, called command by
// command, with the clock, expiry and script cache of Redis, with replicas, WAIT and
// sharded channels, and with the faults of a server. It knows no lock and no client.
//
// The one idea: nothing happens here but within a call of the world, and nothing
// reaches the world but as the result of a call. See sim.Server.
package redis
