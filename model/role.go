package model

// Role is the purpose of a command, whichever lock sends it. The zero value is the role of a
// command that no judge reads.
type Role string

// The roles.
const (
	RoleAcquire     Role = "acquire" // tries to take the lock, or to queue for it
	RoleUnlock      Role = "unlock"
	RoleRenew       Role = "renew" // prolongs the lease of a hold
	RoleForceUnlock Role = "force_unlock"
	RoleLeave       Role = "leave" // takes a waiter out of the queue
)

// Roles are all roles, in the order in which the loader lists them.
var Roles = []Role{RoleAcquire, RoleUnlock, RoleRenew, RoleForceUnlock, RoleLeave}
