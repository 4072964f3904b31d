// Package explore looks for schedules that break a lock: it draws workloads
// and faults, plays them, and makes small what it finds.
package explore
