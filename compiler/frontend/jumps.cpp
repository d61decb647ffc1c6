// A jump into the scope of a pointer into NVM, past its initialization, is an error (paper, §3.7),
// as it is in C99 for arrays of variable length.
//
// One walk over a function's body notes for each jump and each label which such variables are alive
// there. A jump is wrong if a variable is alive at its end that is not at its start.
#include "checks.h"
#include "types.h"

#include "clang/AST/Decl.h"
#include "clang/AST/Expr.h"
#include "clang/AST/Stmt.h"

#include <deque>

namespace nvl {
namespace {

using namespace clang;

// A variable, and those that were alive before it.
struct Scope {
    const VarDecl *variable;
    const Scope *outer;
};

class Jumps {
  public:
    explicit Jumps(State &state) : state(state) {}

    void check(Stmt *body) {
        const Scope *none = nullptr;
        walk(body, none);
        for (const Jump &jump : jumps)
            for (const LabelDecl *label : jump.targets) {
                auto found = labels.find(label);
                if (found != labels.end())
                    check_jump(jump.location, jump.scope, found->second);
            }
        for (const Jump &jump : indirect)
            for (const LabelDecl *label : taken) {
                auto found = labels.find(label);
                if (found != labels.end())
                    check_jump(jump.location, jump.scope, found->second);
            }
    }

  private:
    struct Jump {
        SourceLocation location;
        const Scope *scope;
        SmallVector<const LabelDecl *, 1> targets;
    };

    // `scope` is what is alive before the statement, and afterwards what is alive behind it in the
    // same block.
    void walk(Stmt *statement, const Scope *&scope) {
        if (!statement)
            return;
        if (auto *declarations = dyn_cast<DeclStmt>(statement)) {
            walk_children(statement, scope);
            for (const Decl *declaration : declarations->decls())
                declare(declaration, scope);
            return;
        }
        if (auto *label = dyn_cast<LabelStmt>(statement)) {
            labels[label->getDecl()] = scope;
            walk(label->getSubStmt(), scope);
            return;
        }
        if (auto *label = dyn_cast<SwitchCase>(statement)) {
            if (!switches.empty())
                check_jump(label->getKeywordLoc(), switches.back(), scope);
            walk(label->getSubStmt(), scope);
            return;
        }
        if (auto *jump = dyn_cast<GotoStmt>(statement)) {
            jumps.push_back({jump->getGotoLoc(), scope, {jump->getLabel()}});
            return;
        }
        if (auto *assembly = dyn_cast<GCCAsmStmt>(statement)) {
            Jump jump{assembly->getAsmLoc(), scope, {}};
            for (const AddrLabelExpr *label : assembly->labels())
                jump.targets.push_back(label->getLabel());
            jumps.push_back(jump);
            return;
        }
        if (auto *jump = dyn_cast<IndirectGotoStmt>(statement))
            indirect.push_back({jump->getGotoLoc(), scope, {}});
        if (auto *address = dyn_cast<AddrLabelExpr>(statement))
            taken.push_back(address->getLabel());
        if (isa<SwitchStmt>(statement))
            switches.push_back(scope);
        // A statement's variables end with it, those of `for (T *p = a; ...)` too.
        const Scope *inner = scope;
        walk_children(statement, inner);
        if (isa<SwitchStmt>(statement))
            switches.pop_back();
    }

    void walk_children(Stmt *statement, const Scope *&scope) {
        bool is_block = isa<CompoundStmt>(statement) || isa<ForStmt>(statement);
        for (Stmt *child : statement->children()) {
            const Scope *own = scope;
            walk(child, is_block ? scope : own);
        }
    }

    void declare(const Decl *declaration, const Scope *&scope) {
        const auto *variable = dyn_cast<VarDecl>(declaration);
        if (!variable || !variable->hasLocalStorage() || !has_nvl_pointer(variable->getType()))
            return;
        scope = &scopes.emplace_back(Scope{variable, scope});
    }

    void check_jump(SourceLocation location, const Scope *from, const Scope *to) {
        for (const Scope *alive = to; alive; alive = alive->outer) {
            bool is_known = false;
            for (const Scope *known = from; known && !is_known; known = known->outer)
                is_known = known == alive;
            if (is_known)
                return;
            report(state.diagnostics(), location, Diag::Jump) << alive->variable;
            note(state.diagnostics(), alive->variable->getLocation(), "%0 is declared here")
                << alive->variable;
        }
    }

    State &state;
    std::deque<Scope> scopes;
    std::deque<Jump> jumps;
    std::deque<Jump> indirect;
    SmallVector<const LabelDecl *, 4> taken;
    SmallVector<const Scope *, 4> switches;
    llvm::DenseMap<const LabelDecl *, const Scope *> labels;
};

} // namespace

void check_jumps(State &state, Stmt *body) {
    Jumps(state).check(body);
}

} // namespace nvl
