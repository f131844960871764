// The spaces in this folder are there to be counted: how fast their valid configurations are found.
// This kernel stands in for the real ones, which their constraints come from.
