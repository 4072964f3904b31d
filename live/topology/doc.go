// Package topology starts Redis servers that know of one another: a server with replicas, such a
// server under sentinels, and a cluster. It waits until they serve, promotes a replica, moves a
// slot, and ends them.
//
// Each server has a [Front], a TCP proxy in front of it. The servers know one another by the
// addresses of the fronts, so replication passes them. A front delays replication by a lag, and
// loses what is under way when its server dies. Clients connect to the server itself.
//
// The package knows nothing of locks. It runs on Linux.
package topology
