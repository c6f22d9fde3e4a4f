# Print the targets of a Makefile in their groups: the lines `##@ group` and `target: … ## what it does`.
/^##@ / { printf "\n%s\n", substr($0, 5) }
/^[a-z-]+:.* ## / { printf "  %-16s %s\n", substr($1, 1, index($1, ":") - 1), substr($0, index($0, " ## ") + 4) }
