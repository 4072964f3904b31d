// Package redis is the Redis server of the world: miniredis, called command by
// command, with the clock, expiry and script cache of Redis, with replicas, WAIT and
// sharded channels, and with the faults of a server. It knows no lock and no client.
//
// The one idea: the server acts only during calls of the world, and reaches the world only by the
// results of these calls. See sim.Server.
package redis
