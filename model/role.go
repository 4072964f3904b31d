package model

// Role says what a command is for, whichever lock sends it. The zero value is a
// command that no judge asks about.
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
